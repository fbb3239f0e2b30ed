"""A tool called over HTTP without the client, as a program in another language would do it."""

# [start:all]
import json
import os
import urllib.request

call = urllib.request.Request(
    os.environ["RUNMEMORY_URL"] + "/api/run/save_checkpoint",
    data=json.dumps({"run_id": "invoice-import", "step": "page 1", "state": {"cursor": 1}}).encode(),
    headers={
        "Authorization": f"Bearer {os.environ['RUNMEMORY_API_KEY']}",
        "Idempotency-Key": "invoice-import, page 1",
    },
)
with urllib.request.urlopen(call) as answer:
    print(json.load(answer)["outcome"])
# [end:all]
