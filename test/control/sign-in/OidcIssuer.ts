import { createHash, randomBytes } from "node:crypto"
import { createServer, type IncomingMessage } from "node:http"
import { Effect } from "effect"
import * as Issuer from "../../gateway/Issuer.ts"
import { portOf } from "../../upstream/SimulatorServer.ts"

export const client = { id: "svc browser", secret: "s3cret+of/the=client" }

/** An OpenID provider on a port of its own, at which whoever comes is signed in at once. */
export interface OidcIssuer {
  readonly issuer: string
  readonly discoveryUrl: string
  /** In place of what the id token would say. */
  claims: Readonly<Record<string, unknown>>
  /** With which tokens are signed; only the first key is published. */
  signer: Issuer.SigningKey
  /** How many codes were exchanged, or refused. */
  exchanges: number
}

interface Grant {
  readonly challenge: string
  readonly nonce: string
  readonly redirectUri: string
}

export const serve = Effect.gen(function* () {
  const key = yield* Issuer.signingKey()
  const { server } = yield* Effect.acquireRelease(
    Effect.promise(() => start(key)),
    ({ close }) => Effect.promise(close)
  )
  return server
})

const start = async (key: Issuer.SigningKey) => {
  const grants = new Map<string, Grant>()
  const http = createServer(async (incoming, response) => {
    const url = new URL(incoming.url ?? "", origin)
    const json = (status: number, body: unknown) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
    if (url.pathname === "/keys") return json(200, { keys: [key.jwk] })
    if (url.pathname === "/authorize") {
      const code = randomBytes(12).toString("hex")
      const redirectUri = url.searchParams.get("redirect_uri") ?? ""
      grants.set(code, {
        redirectUri,
        challenge: url.searchParams.get("code_challenge") ?? "",
        nonce: url.searchParams.get("nonce") ?? ""
      })
      const back = new URL(redirectUri)
      back.search = new URLSearchParams({
        code,
        state: url.searchParams.get("state") ?? "",
        iss: server.issuer,
        session_state: "unknown to the client"
      }).toString()
      return response.writeHead(302, { location: back.href }).end()
    }
    if (url.pathname === "/token") {
      server.exchanges++
      const form = new URLSearchParams(await textOf(incoming))
      const code = form.get("code") ?? ""
      const grant = grants.get(code)
      grants.delete(code)
      if (incoming.headers.authorization !== basic) return json(401, { error: "invalid_client" })
      if (grant?.redirectUri !== form.get("redirect_uri") || grant?.challenge !== s256(form.get("code_verifier"))) {
        return json(400, { error: "invalid_grant", error_description: "canary" })
      }
      const claims = { ...claimsOf(server.issuer, grant?.nonce), ...server.claims }
      const id_token = await Effect.runPromise(Issuer.sign(server.signer, claims))
      return json(200, { id_token, access_token: "canary", token_type: "Bearer" })
    }
    return json(200, {
      issuer: server.issuer,
      jwks_uri: `${origin}/keys`,
      authorization_endpoint: `${origin}/authorize?tenant=blue`,
      token_endpoint: `${origin}/token`
    })
  })
  await new Promise<void>((listening) => http.listen(0, "127.0.0.1", listening))
  const origin = `http://127.0.0.1:${portOf(http.address())}`
  const server: OidcIssuer = {
    issuer: `${origin}/v2.0`,
    discoveryUrl: `${origin}/.well-known/openid-configuration`,
    claims: {},
    signer: key,
    exchanges: 0
  }
  const close = () =>
    new Promise<void>((closed) => {
      http.close(() => closed())
      http.closeAllConnections()
    })
  return { server, close }
}

const claimsOf = (issuer: string, nonce: string | undefined) => {
  const now = Math.floor(Date.now() / 1000)
  return { iss: issuer, aud: client.id, sub: "ada", iat: now, exp: now + 300, nonce, groups: ["staff", "readers"] }
}

const textOf = async (incoming: IncomingMessage) => {
  const chunks: Array<Buffer> = []
  for await (const chunk of incoming) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString("utf8")
}

const s256 = (verifier: string | null) =>
  createHash("sha256")
    .update(verifier ?? "")
    .digest("base64url")

const basic = `Basic ${Buffer.from("svc+browser:s3cret%2Bof%2Fthe%3Dclient").toString("base64")}`
