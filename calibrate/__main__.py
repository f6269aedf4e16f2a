"""`python -m calibrate <verb>`."""

import sys

try:  # Ctrl-C may come while modules are still being read
    from calibrate.cli import main

    sys.exit(main())
except KeyboardInterrupt:
    if "--json" in sys.argv:
        print('{"error": "stopped"}')
    print("touchstone: stopped", file=sys.stderr)
    sys.exit(130)
