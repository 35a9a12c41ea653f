import { useMutation } from "@tanstack/react-query"
import type { ApiError } from "../../../api/ApiError.ts"
import { call } from "../../../api/control.ts"
import type { ResponseOf } from "../../../api/Endpoints.ts"
import type { Simulation } from "./request.ts"

export const simulatePath = "/admin-ui/admin/policy/simulate"
export type SimulationResult = ResponseOf<"POST", typeof simulatePath>

interface Asked {
  readonly now: Simulation
  readonly proposed: Simulation | undefined
}

interface Decided {
  readonly now: SimulationResult
  readonly proposed: SimulationResult | undefined
}

/** Asks for the decision now, and for that with a change. */
export const useSimulations = () => {
  const decide = useMutation<Decided, ApiError, Asked>({
    mutationFn: async ({ now, proposed }) => {
      const [first, second] = await Promise.all([
        call("POST", simulatePath, { body: now }),
        proposed === undefined ? undefined : call("POST", simulatePath, { body: proposed })
      ])
      return { now: first, proposed: second }
    }
  })
  return {
    run: (now: Simulation, proposed: Simulation | undefined) => decide.mutate({ now, proposed }),
    isBusy: decide.isPending,
    error: decide.error,
    decided: decide.data,
    clear: decide.reset
  }
}
