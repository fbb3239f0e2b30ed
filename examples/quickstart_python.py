"""An import of ten invoices: stop it with Ctrl-C or kill it, start it again, and it goes on."""

# [start:all]
import time

from runmemory_core import Client

invoices = [f"invoice-{number}" for number in range(1, 11)]

with Client() as client, client.run("ten-invoices", again=True) as run:
    imported = run.state.get("imported", 0)
    for invoice in run.remaining(invoices):  # without those that are done already
        time.sleep(0.2)  # your work
        imported += 1
        saved = run.save(f"imported {invoice}", state={"imported": imported}, done=[invoice])
        print(saved.outcome)
# [end:all]
