/** The place of a value in the payload: its name or index, and the place around it. `undefined` is the payload itself. */
export interface Place {
  readonly step: string | number
  readonly around: Place | undefined
}

/** Names of members are foreign text, so a path is cut where it becomes long: it then names a value around the place. */
const maxPath = 500

/** Returns the path below `root` in the form of the mistakes of envelopes: `payload.items.0.id`. */
export const pathOf = (root: string, place: Place | undefined): string => {
  const steps: Array<string | number> = []
  for (let at = place; at !== undefined; at = at.around) steps.push(at.step)
  let path = root
  for (const step of steps.reverse()) {
    const next = `${path}.${step}`
    if (next.length > maxPath) return path
    path = next
  }
  return path
}
