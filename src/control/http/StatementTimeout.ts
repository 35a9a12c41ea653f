import { Duration, Effect } from "effect"
import { HttpRouter } from "effect/http"
import { StatementDeadline } from "../../services/Database.ts"

/** Limits every statement of a request to 10 seconds. A database that does not respond means 503. */
export const StatementTimeout = HttpRouter.middleware(Effect.provideService(StatementDeadline, Duration.seconds(10)), {
  global: true
})
