"""The two calls without `Run`: for programs whose steps are not items of a list."""

# [start:all]
from runmemory_core import Client

with Client() as client:
    found = client.resume("monthly-report")
    if found.status == "finished":
        found = client.resume("monthly-report", start_over=True)
    state = (found.checkpoint.state if found.checkpoint else None) or {"month": 0}

    for month in range(state["month"] + 1, 13):
        state = {"month": month}  # your work
        client.save_checkpoint("monthly-report", f"month {month}", state=state, attempt=found.attempt)

    client.save_checkpoint("monthly-report", "report sent", status="finished", attempt=found.attempt)
# [end:all]
