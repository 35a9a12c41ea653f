import { Option, Result, Schema } from "effect"
import * as Kinds from "./VariableKinds.ts"

export type Environment = Readonly<Record<string, string | undefined>>

export type Address = typeof Kinds.Address.Type & { readonly variable?: string }

/** One invalid variable. `message` describes the allowed values. It never contains the value, which may be a secret. */
export interface Mistake {
  readonly variable: string
  readonly message: string
}

/** Reads variables, and collects the mistakes. A variable that is blank or invalid counts as unset. */
export class Variables {
  readonly mistakes: Array<Mistake> = []
  readonly #environment: Environment

  constructor(environment: Environment) {
    this.#environment = environment
  }

  optional<A>(variable: string, kind: Schema.ConstraintDecoder<A>): Option.Option<A> {
    const text = this.#environment[variable]?.trim() ?? ""
    if (text === "") return Option.none()
    const decoded = Schema.decodeUnknownResult(kind)(text)
    if (Result.isFailure(decoded)) this.mistakes.push({ variable, message: decoded.failure.message })
    return Result.getSuccess(decoded)
  }

  withDefault<A>(variable: string, kind: Schema.ConstraintDecoder<A>, unset: NoInfer<A>): A {
    return Option.getOrElse(this.optional(variable, kind), () => unset)
  }

  address(variable: string, port: number): Address {
    return { ...this.withDefault(variable, Kinds.Address, { host: "127.0.0.1", port }), variable }
  }

  /** Adds a mistake, unless the variable already has one. Each variable is reported only once. */
  reject(variable: string, message: string): void {
    if (!this.mistakes.some((mistake) => mistake.variable === variable)) this.mistakes.push({ variable, message })
  }
}
