"""A tool called over HTTP without the client, as a program in another language would do it."""

# [start:all]
import json
import os
import sys
import urllib.error
import urllib.request

call = urllib.request.Request(
    os.environ["RUNMEMORY_URL"] + "/api/run/save_checkpoint",
    data=json.dumps({"run_id": "page-export", "step": "page 1", "state": {"cursor": 1}}).encode(),
    headers={
        "Authorization": f"Bearer {os.environ['RUNMEMORY_API_KEY']}",
        "Idempotency-Key": "page-export, page 1",
    },
)
try:
    with urllib.request.urlopen(call) as answer:
        print(json.load(answer)["outcome"])
except urllib.error.HTTPError as refusal:
    sys.exit(json.load(refusal)["detail"])  # in words, with the way out; "code" is for programs
# [end:all]
