import { Context, Layer } from "effect"

interface Condition {
  readonly name: string
  readonly status: string
  readonly ok: boolean
}

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
