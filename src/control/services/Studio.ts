import { Context, Effect, Layer, Option, Schema } from "effect"
import { Egress, type EgressError } from "../../services/Egress.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { StudioService } from "../api/services/StudioApi.ts"
import { describeFirstIssue } from "../http/RequestDecoding.ts"
import type { StoreFailure } from "../store/Rows.ts"
import { StudioConnection } from "./StudioConnection.ts"
import * as StudioExport from "./StudioExport.ts"

type Unavailable = Refused<"studio_unconfigured" | "studio_unavailable">

export class Studio extends Context.Service<
  Studio,
  { readonly services: Effect.Effect<ReadonlyArray<StudioService>, Unavailable | StoreFailure> }
>()("svc/control/Studio") {
  static readonly layer = Layer.suspend(() => Layer.effect(Studio, make))
}

const withinMs = 8_000
const maxBytes = 4_194_304

const make = Effect.gen(function* () {
  const connection = yield* StudioConnection
  const egress = yield* Egress

  const services = Effect.gen(function* () {
    const { base_url, token } = yield* connection.target
    const { body, status } = yield* Effect.mapError(
      egress.fetch({
        method: "GET",
        url: `${base_url}/studio/gateway/services`,
        headers: { accept: "application/json" },
        ...(Option.isSome(token) && { bearer: token.value }),
        withinMs,
        maxBytes
      }),
      ({ message }: EgressError) => unavailable(`could not be queried. ${message}`)
    )
    if (status < 200 || status > 299) {
      return yield* unavailable(
        `responded with status ${status}${status === 401 || status === 403 ? ": it does not accept the token" : ""}.`
      )
    }
    const exported = yield* Effect.mapError(decodeExport(Buffer.from(body).toString()), ({ issue }) =>
      unavailable(`did not return a list of services. ${describeFirstIssue(issue)}`)
    )
    return StudioExport.rowsOf(exported).map(StudioExport.toStudioService)
  })

  return Studio.of({ services: services.pipe(Effect.withSpan("Studio.services")) })
})

const decodeExport = Schema.decodeEffect(StudioExport.StudioExport)

const unavailable = (what: string) => new ControlError("studio_unavailable", `The studio ${what}`)
