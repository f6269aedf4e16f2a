"""`python -m calibrate <verb>`, or `touchstone <verb>` where the wheel is installed."""

import sys


def main() -> int:
    """Run the command line. Ctrl-C may come while modules are still being imported."""
    try:
        from calibrate.cli import main as run_verb

        return run_verb()
    except KeyboardInterrupt:
        if "--json" in sys.argv:
            print('{"error": "stopped"}')
        print("touchstone: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
