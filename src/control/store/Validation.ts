import { Redacted } from "effect"
import { refusedHeaderName } from "../../policy/routes/CredentialStyle.ts"
import type { Vendor } from "../../policy/routes/Vendor.ts"

/** A problem of a value, as the end of a sentence that begins with the field's name. `undefined` means no problem. */
export type Violation = string | undefined

export const ifPresent = <A>(value: A | null | undefined, rule: (value: A) => Violation): Violation =>
  value === null || value === undefined ? undefined : rule(value)

export const validateUpTo =
  (maximum: number) =>
  (value: number): Violation =>
    value >= 1 && value <= maximum ? undefined : `must be between 1 and ${maximum}`

const maxNameLength = 120
const maxUrlLength = 2048

const controlCharacter = /\p{Cc}/u

export const validateName = (name: string): Violation =>
  name.length === 0 || [...name].length > maxNameLength
    ? `must have 1 to ${maxNameLength} characters`
    : controlCharacter.test(name)
      ? "must not contain control characters"
      : undefined

const validateHttpUrl = (text: string): Violation => {
  const url = text.length <= maxUrlLength && URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:") || url.hostname === "") {
    return "must be an http or https URL with a host"
  }
  if (url.username !== "" || url.password !== "") {
    return "must not carry a user or password: the credential has a field of its own"
  }
  return undefined
}

/** The address of a service ends after the host and port, because requests contain the path. */
export const validateOrigin = (text: string): Violation =>
  validateHttpUrl(text) ??
  (new URL(text).pathname !== "/" || /[?#]/.test(text)
    ? "must end after the host and port: the routes bring their own path (https://host, not https://host/v1)"
    : undefined)

/** The address of an upstream or studio, to which the gateway appends paths. */
export const validateBaseUrl = (text: string): Violation =>
  validateHttpUrl(text) ??
  (/[?#]/.test(text) ? "must not carry a query or a fragment: paths are added at its end" : undefined)

export const trimBaseUrl = (text: string): string => {
  const { origin, pathname } = new URL(text)
  let end = pathname.length
  while (pathname.charAt(end - 1) === "/") end--
  return origin + pathname.slice(0, end)
}

export const validateUrl = (text: string): Violation =>
  validateHttpUrl(text) ?? (text.includes("#") ? "must not carry a fragment" : undefined)

export const validateCredential = (credential: Redacted.Redacted): Violation =>
  /^[\x21-\x7e]{1,4096}$/.test(Redacted.value(credential))
    ? undefined
    : "must be 1 to 4096 visible ASCII characters, without spaces"

export interface CredentialHeader {
  readonly family: Vendor | null
  readonly credential_header_mode: "authorization_bearer" | "custom_header"
  readonly credential_header_name: string | null
}

export const validateCredentialHeader = ({
  credential_header_mode: mode,
  credential_header_name: name,
  family
}: CredentialHeader): Violation => {
  // The gateway never forwards Anthropic's credential header from clients. It may therefore set this header.
  if (family === "anthropic" && name?.toLowerCase() === "x-api-key") return undefined
  if (name !== null) return refusedHeaderName(name)
  return mode === "custom_header" ? "is required when credential_header_mode is custom_header" : undefined
}
