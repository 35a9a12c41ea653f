import { isJsonObject, type JsonObject } from "../../messaging/envelope/Envelope.ts"
import * as ExactJson from "../../messaging/envelope/ExactJson.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"
import * as EventFrames from "./EventFrames.ts"

/**
 * Transforms an event before it is sent to a client. Both arguments have the public field names. In `event`, integers
 * of 2^53 or more are rounded. In `exact`, they are values of `JSON.rawJSON`, which keep every digit. If clients need
 * such integers, return members of `exact`.
 */
export type OutputAdapter = (event: JsonObject, exact: JsonObject) => JsonObject

export interface Presentation {
  /** The public field names. Default: `ContractAliases`, or the canonical names if it is not set. */
  readonly aliasConfig?: ContractAliasConfig | undefined
  readonly outputAdapter?: OutputAdapter | undefined
}

/** Returns the public JSON of an event, or `undefined` if it is not an object. Throws the errors of `outputAdapter`. */
type EventPresenter = (json: string) => string | undefined

/** Without aliases and an output adapter, the stored JSON is sent without parsing it. */
export const makePresenter = ({ aliasConfig, outputAdapter }: Presentation): EventPresenter =>
  aliasConfig === undefined && outputAdapter === undefined
    ? EventFrames.oneLine
    : (json) => {
        const read = parseObject(json)
        if (read === undefined) return undefined
        const { exact, ordinary } = read
        const withAliases = (event: JsonObject) => aliasConfig?.outbound(event) ?? event
        return JSON.stringify(outputAdapter?.(withAliases(ordinary), withAliases(exact)) ?? withAliases(exact))
      }

const parseObject = (json: string): ExactJson.ExactAndOrdinary<JsonObject> | undefined => {
  try {
    const { exact, ordinary } = ExactJson.read(json)
    return isJsonObject(exact) && isJsonObject(ordinary) ? { exact, ordinary } : undefined
  } catch {
    return undefined
  }
}
