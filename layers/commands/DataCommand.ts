import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { readSettings, withModule } from "./CommandEnvironment.ts"

export const data = Command.make("data").pipe(
  Command.withDescription("The data of a process without real servers"),
  Command.withSubcommands([
    Command.make(
      "export",
      {
        data: Flag.String("data").pipe(
          Flag.optional,
          Flag.withDescription("The data directory, which no process may use meanwhile; defaults to SVC_DATA_DIR")
        ),
        to: Flag.Redacted("to").pipe(
          Flag.optional,
          Flag.withDescription("The URL of an empty PostgreSQL database; defaults to DATABASE_URL")
        )
      },
      (destination) =>
        Effect.flatMap(readSettings, (settings) =>
          withModule(
            () => import("./ExportData.ts"),
            ({ run }) => run(settings, destination)
          )
        )
    ).pipe(Command.withDescription("Copy the embedded database of a data directory to PostgreSQL, in one transaction"))
  ])
)
