import { Context, Layer, Option, Ref } from "effect"

export interface BoundAddress {
  /** As the configuration writes it, such as `localhost`. */
  readonly host: string
  /** The IP address of the socket. */
  readonly ip: string
  readonly port: number
}

/** Where the proxy listener of this process listens, once it does. */
export class GatewayAddress extends Context.Service<GatewayAddress, Ref.Ref<Option.Option<BoundAddress>>>()(
  "svc/GatewayAddress"
) {
  static readonly layer = Layer.effect(GatewayAddress, Ref.make(Option.none<BoundAddress>()))
  static readonly listening = (bound: BoundAddress) => Layer.effect(GatewayAddress, Ref.make(Option.some(bound)))
}
