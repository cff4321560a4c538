"""`python -m rocketpy.broker_core.cli`: the same where no script was installed."""

from rocketpy.broker_core.cli.app import main

main()
