"""Puts real MCP clients into a cache folder of their own: Node, what runs on it, and Python environments.

``python -m tests.clients.install`` or the first test that needs them; what is there is used again. Versions are
named here, so that a run says which clients it speaks for; where they come from is npm's and uv's affair.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import platformdirs

from tests.environments import alone, make_environment

NODE = "node@22.23.3"
NPM = (
    "@anthropic-ai/claude-code@2.1.332",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@2.12.0",
    "@openai/codex@0.171.0",
)
PYTHON = {
    "mcp1": ("mcp==1.30.0",),
    "mcp2": ("mcp==2.3.0",),
    "langchain": ("langchain-mcp-adapters==0.3.2", "langchain-core==1.8.3", "mcp==1.30.0"),
    "llamaindex": ("llama-index-tools-mcp==0.4.8", "llama-index-core==0.14.25", "mcp==1.30.0"),
}
JUDGES = {
    "catalogue": ("skills-ref==0.1.1", "skillsaw==0.22.0"),
}


def folder() -> Path:
    """Where the clients of exactly these versions lie: in the cache, or below what RUNMEMORY_CLIENTS names."""
    versions = hashlib.sha256(json.dumps([NODE, NPM, PYTHON, JUDGES]).encode()).hexdigest()[:12]
    named = os.environ.get("RUNMEMORY_CLIENTS")
    return (Path(named) if named else platformdirs.user_cache_path("runmemory-clients")) / versions


def node_path(clients: Path) -> str:
    """A PATH on which Node 22 and the npm clients come first."""
    modules = clients / "node_modules"
    return os.pathsep.join([str(modules / "node" / "bin"), str(modules / ".bin"), "/usr/bin", "/bin"])


def install() -> Path:
    """Install what is missing and return the folder; several processes may ask at once."""
    clients = folder()
    with alone(clients) as complete:
        if not complete:
            _install_node(clients)
            for name, packages in (PYTHON | JUDGES).items():
                make_environment(clients / name, *packages)
    return clients


def _install_node(clients: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError("the clients need npm on the PATH, of any Node: it installs Node 22 for itself")
    (clients / "package.json").write_text('{"private": true}')
    flags = ["--prefix", str(clients), "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
    # Node first: npm takes the newest versions that run on the Node it finds.
    for packages in ((NODE,), NPM):
        path = f"{node_path(clients)}{os.pathsep}{os.environ['PATH']}"
        command = [npm, "install", *flags, *packages]
        subprocess.run(command, env=os.environ | {"PATH": path}, cwd=clients, check=True)


if __name__ == "__main__":
    print(install())
