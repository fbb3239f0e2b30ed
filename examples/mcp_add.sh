claude mcp add --transport http run-memory http://127.0.0.1:8787/mcp --header "Authorization: Bearer $RUNMEMORY_API_KEY"
codex mcp add run-memory --url http://127.0.0.1:8787/mcp --bearer-token-env-var RUNMEMORY_API_KEY
