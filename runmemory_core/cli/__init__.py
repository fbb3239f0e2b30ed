"""The command line: `main` reads the arguments, and a module for each kind of command does the rest.

Tables need rich and serving needs the server extra; only the commands that use them load them. ``--json``
prints for programs. A failure is one line on stderr and an exit code other than 0.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from runmemory_core import __version__
from runmemory_core.cli import keeping, looking, output
from runmemory_core.cli.doctor import doctor
from runmemory_core.errors import RunMemoryError
from runmemory_core.model import DEFAULT_ACCOUNT, SUMMARY, Plan

_FAILED = 1
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    chosen = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], None] = chosen.command
    try:
        command(chosen)
        sys.stdout.flush()
    except RunMemoryError as error:
        sys.stderr.write(f"runmemory: {output.plain(error.detail)}\n")
        return _FAILED
    except output.ExtraMissing as error:
        sys.stderr.write(f"{error}\n")
        return _FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # who reads, such as head, has enough; Python would flush once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="runmemory", description=SUMMARY)
    parser.add_argument("--version", action="version", version=f"runmemory {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for_programs = argparse.ArgumentParser(add_help=False)
    for_programs.add_argument("--json", action="store_true", help="print JSON, for programs")
    _add_looking(commands, for_programs)
    _add_keeping(commands, for_programs)
    return parser


def _add_looking(commands: Any, for_programs: argparse.ArgumentParser) -> None:
    """What a person asks of their runs, in a file or at a service."""
    place = argparse.ArgumentParser(add_help=False, parents=[for_programs])
    either = place.add_mutually_exclusive_group()
    either.add_argument("--url", help="a service; RUNMEMORY_API_KEY holds its key")
    either.add_argument("--database", dest="url", help="a database: a file's path, or sqlite:///path")

    def add(name: str, command: Callable[[argparse.Namespace], None], words: str) -> argparse.ArgumentParser:
        adding = commands.add_parser(name, parents=[place], help=words)
        adding.set_defaults(command=command)
        return adding

    runs = add("runs", looking.runs, "the runs that were active last")
    runs.add_argument("--unfinished", action="store_true", help="only those that are not finished")
    add("show", looking.show, "one run: its last state and its checkpoints").add_argument(
        "run", metavar="RUN"
    )
    add("report", looking.report, "the last 7 days in words")
    add("usage", looking.usage, "calls used today, the plan and its limits")
    add("delete", looking.delete, "delete a run and all its checkpoints").add_argument("run", metavar="RUN")
    add("doctor", doctor, "check what works from here")


def _add_keeping(commands: Any, for_programs: argparse.ArgumentParser) -> None:
    """What is done where the database lies."""
    place = argparse.ArgumentParser(add_help=False)
    place.add_argument(
        "--database",
        help="a file's path, or sqlite:///path; else RUNMEMORY_DATABASE, else this machine's own file",
    )

    serving = commands.add_parser("serve", parents=[place], help="serve over HTTP")
    serving.add_argument("--host", help="the address to listen on, 127.0.0.1 by default")
    serving.add_argument("--port", type=int, help="8787 by default; 0 takes a free one")
    serving.add_argument("--access-log", action="store_true", help="log a line for each request")
    serving.set_defaults(command=keeping.serve)

    speaking = commands.add_parser(
        "mcp", parents=[place], help="MCP on stdin and stdout, for clients that start a command"
    )
    speaking.set_defaults(command=keeping.mcp)

    parents = [place, for_programs]
    _add_keys(commands, parents)
    sweeping = commands.add_parser("sweep", parents=parents, help="remove what has expired")
    sweeping.add_argument(
        "--runs-older-than",
        type=int,
        metavar="DAYS",
        help="remove runs of every account that were silent so long",
    )
    sweeping.set_defaults(command=keeping.sweep)


def _add_keys(commands: Any, parents: list[argparse.ArgumentParser]) -> None:
    keys = commands.add_parser("keys", help="API keys of a service").add_subparsers(
        metavar="ACTION", required=True
    )
    issuing = keys.add_parser("issue", parents=parents, help="make a key and show it, this once")
    issuing.add_argument("--account", default=DEFAULT_ACCOUNT, help="whose runs it reaches")
    plans = [plan.value for plan in (Plan.OWN, Plan.PRO, Plan.WATCH)]
    issuing.add_argument("--plan", choices=plans, default=Plan.OWN.value, help="what it may do")
    issuing.add_argument("--label", default="", help="what it is for, in your words")
    issuing.add_argument(
        "--url",
        help="where programs reach the service; by default RUNMEMORY_PUBLIC_URL, else where serve would listen",
    )
    issuing.set_defaults(command=keeping.issue)
    keys.add_parser("list", parents=parents, help="all keys").set_defaults(command=keeping.list_all)
    revoking = keys.add_parser("revoke", parents=parents, help="make a key worthless, within seconds")
    revoking.add_argument("key_id", metavar="KEY_ID")
    revoking.set_defaults(command=keeping.revoke)
