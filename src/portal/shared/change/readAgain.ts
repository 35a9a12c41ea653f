import type { QueryClient } from "@tanstack/react-query"

const mostWaitMs = 2_000

/** Reads again what is shown after a change. A dialog closes over the new state, and does not wait for a read that hangs. */
export const readAgain = (client: QueryClient): Promise<unknown> =>
  Promise.race([client.invalidateQueries(), new Promise((go) => window.setTimeout(go, mostWaitMs))])
