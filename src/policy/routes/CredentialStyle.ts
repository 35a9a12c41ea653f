import { Redacted, Schema } from "effect"
import type { Family } from "./CanonicalRoute.ts"

/** The header and the format in which a request carries the upstream credential. */
export type CredentialStyle =
  | { readonly _tag: "AuthorizationBearer" }
  | { readonly _tag: "CustomHeader"; readonly name: string; readonly format: "raw" | "bearer" }

export const authorizationBearer: CredentialStyle = { _tag: "AuthorizationBearer" }

export const styleOfFamily: Readonly<Record<Family, CredentialStyle>> = {
  a: authorizationBearer,
  b: { _tag: "CustomHeader", name: "x-api-key", format: "raw" }
}

export const credentialHeader = (style: CredentialStyle): string =>
  style._tag === "AuthorizationBearer" ? "authorization" : style.name

export const credentialField = (style: CredentialStyle, credential: Redacted.Redacted): readonly [string, string] => {
  const secret = Redacted.value(credential)
  const isRaw = style._tag === "CustomHeader" && style.format === "raw"
  return [credentialHeader(style), isRaw ? secret : `Bearer ${secret}`]
}

export const HeaderMode = Schema.Literals(["authorization_bearer", "custom_header"])
export const HeaderValueFormat = Schema.Literals(["raw", "bearer"])

export const styleColumns = {
  credential_header_mode: HeaderMode,
  credential_header_name: Schema.NullOr(Schema.String),
  credential_header_value_format: HeaderValueFormat
}
const StyleColumns = Schema.Struct(styleColumns)

export const styleOf = (row: typeof StyleColumns.Type): CredentialStyle =>
  row.credential_header_mode === "custom_header" && row.credential_header_name !== null
    ? { _tag: "CustomHeader", name: row.credential_header_name, format: row.credential_header_value_format }
    : authorizationBearer

/** Headers that cannot carry a credential, because HTTP or the gateway itself sets or removes them. */
const reservedHeaders = new Set([
  "host",
  "content-length",
  "content-type",
  "content-encoding",
  "accept-encoding",
  "transfer-encoding",
  "connection",
  "keep-alive",
  "te",
  "trailer",
  "upgrade",
  "expect",
  "proxy-connection",
  "proxy-authenticate",
  "authorization",
  "proxy-authorization",
  "cookie",
  "x-aih-api-key",
  "x-api-key",
  "x-request-id",
  "traceparent",
  "tracestate",
  "x-trusted-gateway-identity",
  "x-trusted-gateway-signature"
])

/** Returns the reason why the header `name` cannot carry the credential, or `undefined` if it can. */
export const refusedHeaderName = (name: string): string | undefined => {
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/.test(name)) return "is not a header name"
  const lower = name.toLowerCase()
  if (lower.startsWith("x-svc-")) return "begins with x-svc-, which is reserved for the gateway"
  return reservedHeaders.has(lower)
    ? "names a header that the gateway sets or strips itself; choose another"
    : undefined
}
