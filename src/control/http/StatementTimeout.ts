import { Duration, Effect } from "effect"
import { HttpRouter } from "effect/http"
import { StatementDeadline } from "../../services/Database.ts"

/** No request waits for a database that fell silent: its statements fail, and it is answered with 503. */
export const StatementTimeout = HttpRouter.middleware(Effect.provideService(StatementDeadline, Duration.seconds(10)), {
  global: true
})
