import { isJsonObject, type JsonObject } from "../../messaging/envelope/Envelope.ts"
import * as ExactJson from "../../messaging/envelope/ExactJson.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"
import * as EventFrames from "./EventFrames.ts"

/**
 * Changes an event on its way to a client: it sees the public names, and what it returns is sent. A number from 2^53 on is
 * the nearest that JavaScript has. In `exact` it is a value of `JSON.rawJSON`, which is sent as it came: that is what to
 * pass on where clients have such numbers.
 */
export type OutputAdapter = (event: JsonObject, exact: JsonObject) => JsonObject

export interface Presentation {
  /** Names of fields. Default: `ContractAliases`, or the canonical ones. */
  readonly aliasConfig?: ContractAliasConfig | undefined
  readonly outputAdapter?: OutputAdapter | undefined
}

/** The JSON of a stored event as clients see it, on one line; none when it is no object. Throws what the adapter throws. */
export type EventPresenter = (json: string) => string | undefined

/** An event that nothing changes goes out as it was stored, unread. */
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
