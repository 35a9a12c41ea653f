import { Effect, Layer, Option, Ref } from "effect"
import { OwnGateway, type SendToGateway } from "../../src/control/holder/OwnGateway.ts"
import { type BoundAddress, GatewayAddress } from "../../src/process/GatewayAddress.ts"
import { Egress } from "../../src/services/Egress.ts"
import * as EgressHttp from "../EgressHttp.ts"
import type { AddressPolicy } from "../http/AddressPolicy.ts"

/**
 * Sends requests to the proxy listener of this process, or else to the origin that `GATEWAY_PUBLIC_ORIGIN` names. Nothing
 * else can be reached: callers give a path. Each request has a pool of its own, so no request to an address that an
 * operator has configured can use its connection to a listener of this process.
 */
export const layer = (configured: Option.Option<string>) =>
  Layer.effect(
    OwnGateway,
    Effect.gen(function* () {
      const address = yield* Effect.serviceOption(GatewayAddress)
      const bound = Option.match(address, { onNone: () => Effect.succeedNone, onSome: Ref.get })
      return Effect.map(bound, (listening) => Option.map(destinationOf(listening, configured), sendTo))
    })
  )

const sendTo =
  ({ addressPolicy, origin }: Destination): SendToGateway =>
  ({ path, ...request }) =>
    Effect.flatMap(Egress, (egress) => egress.fetch({ ...request, url: origin + path })).pipe(
      Effect.provide(EgressHttp.layer(addressPolicy))
    )

export interface Destination {
  readonly origin: string
  readonly addressPolicy: AddressPolicy
}

/**
 * Only the exact address of the proxy listener may be one of this process. The configured origin may be private, as all
 * origins of environment variables, but it may not lead to a listener of this process, such as that of operators.
 */
export const destinationOf = (
  listening: Option.Option<BoundAddress>,
  configured: Option.Option<string>
): Option.Option<Destination> =>
  Option.orElse(
    Option.map(Option.flatMap(listening, originOf), (origin) => ({
      origin,
      addressPolicy: { privateAddresses: "allow", trustedOrigins: [origin] }
    })),
    () =>
      Option.map(configured, (origin) => ({
        origin,
        addressPolicy: { privateAddresses: "allow", trustedOrigins: [] }
      }))
  )

/** A listener on every address is called at the loopback address of its family. */
const originOf = ({ ip, port }: BoundAddress): Option.Option<string> => {
  const host = ip === "0.0.0.0" ? "127.0.0.1" : ip === "::" ? "::1" : ip
  return Option.fromNullishOr(URL.parse(`http://${host.includes(":") ? `[${host}]` : host}:${port}`)?.origin)
}
