/** Something that needs a person, with the page on which to act. */
export interface Finding {
  readonly id: string
  /** 3 is the worst. */
  readonly weight: 1 | 2 | 3
  readonly sentence: string
  /** A name from data, after which the sentence goes on. */
  readonly name?: string
  readonly path: string
  readonly search?: Readonly<Record<string, string>>
}

interface Limit {
  readonly meter: string
  readonly unit: string
  readonly window: string
  readonly scope: string
  readonly scope_id: string | null
  readonly scope_name: string
  readonly share: number | null
  readonly resets_at: string
  readonly forecast: string | null
}

const dayMs = 86_400_000

/** Budgets and limits of days and months that are used up, or will be before their reset. */
export const ofLimits = (limits: ReadonlyArray<Limit>, at: (iso: string) => string): ReadonlyArray<Finding> =>
  limits
    .filter(({ share, window }) => window !== "minute" && share !== null)
    .flatMap(({ forecast, meter, scope, scope_id, scope_name, share, unit }): ReadonlyArray<Finding> => {
      const found = {
        id: `limit ${scope} ${scope_id} ${meter}`,
        name: scope_name,
        path: unit === "usd" ? "/limits/budgets" : "/limits",
        search: { open: `${scope}:${scope_id ?? ""}` }
      }
      if ((share ?? 0) >= 1) return [{ ...found, weight: 3, sentence: `has used up ${meter}` }]
      if (forecast !== null)
        return [{ ...found, weight: 2, sentence: `will have ${meter} used up ${at(forecast)} at this rate` }]
      return []
    })

interface Key {
  readonly id: string
  readonly name: string | null
  readonly key_prefix: string
  readonly expires_at: string | null
  readonly rotation_due_at: string | null
}

const soonMs = 7 * dayMs

export const ofKeys = (keys: ReadonlyArray<Key>, now: number, at: (iso: string) => string): ReadonlyArray<Finding> =>
  keys.flatMap(({ expires_at, id, key_prefix, name, rotation_due_at }) => {
    const found = { name: name ?? key_prefix, path: `/keys/${id}` }
    const isSoon = (time: string | null): time is string => time !== null && Date.parse(time) - now < soonMs
    return [
      ...(isSoon(expires_at)
        ? [{ ...found, id: `expires ${id}`, weight: 2 as const, sentence: `expires ${at(expires_at)}` }]
        : []),
      ...(isSoon(rotation_due_at)
        ? [{ ...found, id: `rotate ${id}`, weight: 1 as const, sentence: `is due for rotation ${at(rotation_due_at)}` }]
        : [])
    ]
  })

interface Asked {
  readonly id: string
  readonly key_name: string | null
  readonly key_prefix: string
  readonly meter: string | null
  readonly model: string | null
  readonly reason: string
}

/** Holders of keys who wait for an answer. */
export const ofAsked = (asked: ReadonlyArray<Asked>): ReadonlyArray<Finding> =>
  asked.map(({ id, key_name, key_prefix, meter, model, reason }) => ({
    id: `asked ${id}`,
    weight: 2,
    name: key_name ?? key_prefix,
    sentence: `asks for ${model === null ? ["more", meter ?? []].flat().join(" ") : `the model ${model}`}: ${reason}`,
    path: "/limits/requests",
    search: { state: "open" }
  }))

/** The worst first. */
export const sorted = (findings: ReadonlyArray<Finding>): ReadonlyArray<Finding> =>
  findings.toSorted((a, b) => b.weight - a.weight)
