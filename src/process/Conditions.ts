import { Context, Layer } from "effect"

/** How a part of the process is, for readiness. */
export interface Condition {
  readonly name: string
  /** One word. */
  readonly status: string
  readonly ok: boolean
}

/** What parts of this process say about themselves; readiness asks, and names them. */
export class Conditions extends Context.Service<
  Conditions,
  {
    readonly register: (condition: () => Condition) => void
    readonly current: () => ReadonlyArray<Condition>
  }
>()("svc/gateway/Conditions") {
  static readonly layer = Layer.sync(Conditions, () => {
    const registered: Array<() => Condition> = []
    return Conditions.of({
      register: (condition) => void registered.push(condition),
      current: () => registered.map((condition) => condition())
    })
  })
}
