/** The stricter of the route's and the key's limit, and whose it is, for the message. */
export interface BodyLimit {
  readonly bytes: number
  readonly setBy: "the route" | "this key's policy"
}

export const strictest = (route: number, policy: number | null): BodyLimit =>
  policy !== null && policy < route
    ? { bytes: policy, setBy: "this key's policy" }
    : { bytes: route, setBy: "the route" }

export const tooLarge = ({ bytes, setBy }: BodyLimit): string =>
  `The request body is larger than ${bytes} bytes (max_request_body_bytes of ${setBy}). Send less, or ask an operator to raise it.`
