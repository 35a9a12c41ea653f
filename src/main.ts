#!/usr/bin/env -S node --max-semi-space-size=64
import "./node-version.mjs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Console, Effect, Result, Runtime } from "effect"
import { CliError, Command } from "effect/cli"
import { audit } from "../layers/commands/AuditCommand.ts"
import { configuration } from "../layers/commands/ConfigurationCommand.ts"
import { data } from "../layers/commands/DataCommand.ts"
import { deadLetters, replay } from "../layers/commands/DeadLetterCommands.ts"
import { init } from "../layers/commands/InitCommand.ts"
import { operatorToken } from "../layers/commands/OperatorTokenCommand.ts"
import { prices } from "../layers/commands/PricesCommand.ts"
import { role } from "../layers/commands/RoleCommand.ts"
import { secrets } from "../layers/commands/SecretsCommand.ts"
import * as Startup from "../layers/Startup.ts"
import * as Teardown from "../layers/Teardown.ts"
import { version } from "../layers/telemetry/Version.ts"

/** Prints the failure that ended the program. The command line parser prints its own errors, and a supervisor those of its workers. */
const printFailure = (cause: Cause.Cause<unknown>) => {
  const error = Cause.findError(cause)
  if (Result.isFailure(error)) return Console.error(Cause.pretty(cause))
  const isPrinted = CliError.isCliError(error.success) || !Runtime.getErrorReported(error.success)
  return isPrinted ? Effect.void : Console.error(Startup.describeFailure(error.success))
}

const program = Command.withSubcommands(role, [
  init,
  audit,
  secrets,
  operatorToken,
  configuration,
  prices,
  replay,
  deadLetters,
  data
])

Command.run(program, { version }).pipe(
  Effect.provide(NodeServices.layer),
  Effect.tapCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : printFailure(cause))),
  NodeRuntime.runMain({ teardown: Teardown.drained, disableErrorReporting: true })
)
