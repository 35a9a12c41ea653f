import { Option, Schema } from "effect"
import type { ContractAliasConfig } from "../messaging/Aliases.ts"
import { JsonObject } from "../messaging/Envelope.ts"
import * as EventFrames from "./EventFrames.ts"

/** Changes an event on its way to a client: it sees the public names, and what it returns is sent. */
export type OutputAdapter = (event: JsonObject) => JsonObject

export interface Presentation {
  /** Names of fields. Default: the canonical ones. */
  readonly aliasConfig?: ContractAliasConfig | undefined
  readonly outputAdapter?: OutputAdapter | undefined
}

/** The JSON of a stored event as clients see it, on one line; none when it is no object, or the adapter throws. */
export type Present = (json: string) => string | undefined

/** An event that nothing changes goes out as it was stored, unread. */
export const present = ({ aliasConfig, outputAdapter }: Presentation): Present =>
  aliasConfig === undefined && outputAdapter === undefined
    ? EventFrames.oneLine
    : (json) =>
        Option.getOrUndefined(
          Option.flatMap(
            decode(json),
            Option.liftThrowable((event) => {
              const aliased = aliasConfig?.outbound(event) ?? event
              return JSON.stringify(outputAdapter?.(aliased) ?? aliased)
            })
          )
        )

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(JsonObject))
