"""`python -m calibrate <verb>`."""

import sys

from calibrate.cli import main

sys.exit(main())
