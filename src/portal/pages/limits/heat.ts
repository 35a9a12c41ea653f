import { fieldWords } from "../../shared/fields/fieldWords.ts"
import { type LimitState, type MeterName, type Owner, ownerOf } from "./state/limitStates.ts"

/** The columns of the map, in the order of their windows. */
export const meters: ReadonlyArray<{ readonly name: MeterName; readonly label: string }> = [
  { name: "rpm_limit", label: fieldWords.rpm_limit },
  { name: "tpm_limit", label: fieldWords.tpm_limit },
  { name: "max_requests_per_day", label: fieldWords.max_requests_per_day },
  { name: "max_tokens_per_day", label: fieldWords.max_tokens_per_day },
  { name: "daily_budget_usd", label: fieldWords.daily_budget_usd },
  { name: "monthly_budget_usd", label: fieldWords.monthly_budget_usd }
]

export interface HeatRow {
  readonly owner: Owner
  /** The fullest limit of each meter, for an owner may have several for single routes or models. */
  readonly cells: Partial<Readonly<Record<MeterName, LimitState>>>
  readonly worst: number
}

/** One row for each owner, the fullest first. */
export const heatRows = (limits: ReadonlyArray<LimitState>): ReadonlyArray<HeatRow> =>
  [...Map.groupBy(limits, (limit) => ownerOf(limit).id).values()]
    .flatMap((ofOwner) => {
      const [first] = ofOwner
      if (first === undefined) return []
      const cells: Partial<Record<MeterName, LimitState>> = {}
      for (const limit of ofOwner) {
        const before = cells[limit.meter]
        if (before === undefined || (limit.share ?? -1) > (before.share ?? -1)) cells[limit.meter] = limit
      }
      return [{ owner: ownerOf(first), cells, worst: Math.max(...ofOwner.map(({ share }) => share ?? -1)) }]
    })
    .sort((a, b) => b.worst - a.worst)

/** A word for how full a limit is, which its colour repeats. */
export const levelOf = (share: number | null): "unknown" | "low" | "half" | "high" | "full" =>
  share === null ? "unknown" : share >= 1 ? "full" : share >= 0.8 ? "high" : share >= 0.5 ? "half" : "low"
