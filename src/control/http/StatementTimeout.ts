import { Duration, Effect } from "effect"
import { HttpRouter } from "effect/http"
import { StatementDeadline } from "../../services/Database.ts"

/** Limits every SQL statement of a request to 10 seconds. If the limit is exceeded, the response is a 503. */
export const StatementTimeout = HttpRouter.middleware(Effect.provideService(StatementDeadline, Duration.seconds(10)), {
  global: true
})
