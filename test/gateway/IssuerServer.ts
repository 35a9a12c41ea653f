import { createServer } from "node:http"
import { Effect, type Scope } from "effect"
import { portOf } from "../upstream/SimulatorServer.ts"
import type { SigningKey } from "./Issuer.ts"

/** An OpenID provider on a port of its own. */
export interface IssuerServer {
  readonly issuer: string
  readonly discoveryUrl: string
  /** Published from now on. */
  keys: ReadonlyArray<SigningKey>
  /** What the discovery document says of itself, when it is not the truth. */
  claimed: string | undefined
  /** Milliseconds before the key set is answered. */
  keysAfterMs: number
  /** Answers with a redirect to an address that would say yes. */
  redirects: boolean
  /** Paths that were asked for, oldest first. */
  readonly requests: ReadonlyArray<string>
}

export const serve = (...keys: ReadonlyArray<SigningKey>): Effect.Effect<IssuerServer, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => start(keys)),
      ({ close }) => Effect.promise(close)
    ),
    ({ server }) => server
  )

const start = async (keys: ReadonlyArray<SigningKey>) => {
  const requests: Array<string> = []
  const http = createServer((incoming, response) => {
    const path = incoming.url ?? ""
    requests.push(path)
    if (server.redirects && path !== "/elsewhere") {
      response.writeHead(302, { location: "/elsewhere" }).end()
      return
    }
    const document =
      path === "/.well-known/openid-configuration"
        ? { issuer: server.claimed ?? server.issuer, jwks_uri: `${origin}/keys` }
        : { keys: server.keys.map(({ jwk }) => jwk) }
    const answer = () => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(document))
    }
    if (path === "/keys" && server.keysAfterMs > 0) setTimeout(answer, server.keysAfterMs)
    else answer()
  })
  await new Promise<void>((listening) => http.listen(0, "127.0.0.1", listening))
  const origin = `http://127.0.0.1:${portOf(http.address())}`
  const server: IssuerServer = {
    issuer: `${origin}/tenant-1/v2.0`,
    discoveryUrl: `${origin}/.well-known/openid-configuration`,
    keys,
    claimed: undefined,
    keysAfterMs: 0,
    redirects: false,
    requests
  }
  const close = () =>
    new Promise<void>((closed) => {
      http.close(() => closed())
      http.closeAllConnections()
    })
  return { server, close }
}
