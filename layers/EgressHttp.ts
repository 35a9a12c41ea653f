import { Effect, Layer, Redacted, Result, type Tracer } from "effect"
import { CollectedBytes } from "../src/services/CollectedBytes.ts"
import { Egress, EgressError, type EgressRequest } from "../src/services/Egress.ts"
import type { Flow, Sink, UpstreamError } from "../src/services/Upstream.ts"
import { type AddressPolicy, AddressRefused } from "./http/AddressPolicy.ts"
import * as EgressSpan from "./http/EgressSpan.ts"
import * as UpstreamHttp from "./UpstreamHttp.ts"

/** Operators' requests and guardrail calls share these limits. A proxied request may call several guardrails. */
const limits = {
  connectionsPerOrigin: 512,
  waitingPerOrigin: 1_024,
  queueTimeoutMs: 5_000,
  idleConnections: 64,
  drainTimeout: "1 second"
} as const

/** Sends requests without redirects or retries, and only to addresses that the policy allows. */
export const layer = (addressPolicy: AddressPolicy): Layer.Layer<Egress> =>
  Layer.effect(
    Egress,
    Effect.gen(function* () {
      const { exchange } = yield* UpstreamHttp.make({ ...limits, addressPolicy })

      const send = Effect.fnUntraced(function* (request: EgressRequest, address: RequestAddress, span: Tracer.Span) {
        const { body = null, maxBytes, method, withinMs } = request
        const { origin, target } = address
        const response = new ResponseCollector(maxBytes)
        yield* exchange(
          {
            origin,
            caller: request.caller,
            target,
            method,
            headers: headersOf(request, span),
            body,
            headersWithinMs: withinMs,
            idleWithinMs: withinMs
          },
          response
        ).pipe(
          Effect.mapError((error) => response.refusal ?? toEgressError(error, withinMs)),
          Effect.timeoutOrElse({ duration: withinMs, orElse: () => Effect.fail(timeoutError(withinMs)) })
        )
        return { status: response.status, headers: response.headers, body: response.body.take() }
      })

      const fetch = Effect.fnUntraced(function* (request: EgressRequest) {
        const address = yield* Effect.fromResult(parseUrl(request.url))
        return yield* EgressSpan.around(request.method, address.origin, (span) => send(request, address, span))
      })

      return Egress.of({ fetch })
    })
  )

const headersOf = ({ bearer, headers = {} }: EgressRequest, span: Tracer.Span): ReadonlyArray<string> => [
  ...Object.entries(headers).flat(),
  ...EgressSpan.headersOf(span),
  ...(bearer === undefined ? [] : ["authorization", `Bearer ${Redacted.value(bearer)}`]),
  "accept-encoding",
  "identity",
  "user-agent",
  "svc-runtime"
]

interface RequestAddress {
  readonly origin: string
  readonly target: string
}

const parseUrl = (text: string): Result.Result<RequestAddress, EgressError> => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === "") {
    return invalid("must be an http or https URL with a host")
  }
  if (url.username !== "" || url.password !== "") return invalid("must not carry a user or password")
  if (text.includes("#")) return invalid("must not carry a fragment")
  return Result.succeed({ origin: url.origin, target: url.pathname + url.search })
}

const invalid = (rule: string) =>
  Result.fail(new EgressError({ reason: "invalid_url", message: `The address ${rule}.` }))

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

class ResponseCollector implements Sink {
  readonly body = new CollectedBytes()
  readonly #maxBytes: number
  status = 0
  headers: Readonly<Record<string, string>> = {}
  refusal: EgressError | undefined

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  head(status: number, raw: ReadonlyArray<string>): Flow {
    this.status = status
    this.headers = foldHeaders(raw)
    if (redirects.has(status)) {
      return this.#refuse(
        "redirect",
        `The server responded with a redirect (${status}). Redirects are not followed. Use the address to which the redirect leads.`
      )
    }
    return "continue"
  }

  chunk(bytes: Uint8Array): Flow {
    if (this.body.length + bytes.byteLength > this.#maxBytes) {
      return this.#refuse("too_large", `The server's response exceeds the limit of ${this.#maxBytes} bytes.`)
    }
    this.body.add(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
    return "continue"
  }

  onDrain(): void {}

  #refuse(reason: EgressError["reason"], message: string): Flow {
    this.refusal = new EgressError({ reason, message, status: this.status })
    return "stop"
  }
}

const foldHeaders = (raw: ReadonlyArray<string>): Readonly<Record<string, string>> => {
  const headers = new Map<string, string>()
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = "", value = ""] = [raw[i]?.toLowerCase(), raw[i + 1]]
    const previous = headers.get(name)
    headers.set(name, previous === undefined ? value : `${previous}, ${value}`)
  }
  return Object.fromEntries(headers)
}

const timeoutError = (withinMs: number) =>
  new EgressError({ reason: "timeout", message: `The server did not respond within ${withinMs} ms.` })

const toEgressError = ({ cause, phase, reason }: UpstreamError, withinMs: number): EgressError => {
  if (cause instanceof AddressRefused) {
    return new EgressError({ reason: "refused_address", message: `${cause.message}.`, cause })
  }
  switch (reason) {
    case "timeout":
      return timeoutError(withinMs)
    case "malformed":
      return new EgressError({
        reason,
        message: "The server's response is not valid HTTP. Check the address and its port.",
        cause
      })
    case "busy":
      return new EgressError({
        reason: "unreachable",
        message: "Too many requests to the server are in progress. Try again later."
      })
    case "refused":
    case "reset":
    case "stopped":
      return new EgressError({
        reason: "unreachable",
        message:
          phase === "connect"
            ? `The connection to the server failed${systemCodeOf(cause)}. Check the address, and whether the server is running.`
            : "The server closed the connection before its response was complete.",
        cause
      })
  }
}

const systemCodeOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" ? ` (${cause.code})` : ""
