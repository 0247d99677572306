"""The walk of the README and no more, for a server on another store."""

import aws_cli
import checks

if __name__ == "__main__":
    checks.run(aws_cli.WALK, aws_cli.Cli(checks.endpoint()))
