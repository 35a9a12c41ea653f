import { Argument, Command } from "effect/cli"
import { withModule } from "./CommandEnvironment.ts"

export const init = Command.make(
  "init",
  {
    folder: Argument.String("folder").pipe(
      Argument.withDescription("The folder of the project, new or empty; its name becomes the name of the package")
    )
  },
  ({ folder }) =>
    withModule(
      () => import("./init/NewProject.ts"),
      ({ create }) => create(folder)
    )
).pipe(Command.withDescription("Write a small project: tasks, a worker, tests, and the servers as a compose file"))
