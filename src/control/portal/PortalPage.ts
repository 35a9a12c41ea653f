import { randomBytes } from "node:crypto"
import { HttpServerResponse } from "effect/http"
import { plainPage } from "../http/PlainPage.ts"
import { securityHeaders } from "../http/RequestIds.ts"
import type { InstallationFacts } from "./InstallationFacts.ts"

const noncePlace = "__nonce__"
const installationElement = /(<script type="application\/json" id="installation">)[^<]*(?=<)/

/** True for a text that has the places which every response fills. */
export const isPage = (html: string): boolean => html.includes(noncePlace) && installationElement.test(html)

/** Returns the page with a nonce of its own, and with what it says of the installation. */
export const respond = (html: string, facts: InstallationFacts): HttpServerResponse.HttpServerResponse => {
  const nonce = randomBytes(18).toString("base64")
  const page = html
    .replace(installationElement, (_, start: string) => start + scriptText(facts))
    .replaceAll(noncePlace, () => nonce)
  return HttpServerResponse.text(page, {
    contentType: "text/html; charset=utf-8",
    headers: { ...securityHeaders, "content-security-policy": policyOf(nonce) }
  })
}

/**
 * Everything comes from this origin. Styles that scripts add carry the nonce; style attributes are set by scripts alone,
 * which the policy does not concern.
 */
const policyOf = (nonce: string): string =>
  [
    "default-src 'none'",
    `script-src 'self' 'nonce-${nonce}'`,
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "object-src 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'"
  ].join("; ")

/** JSON within a script element. No value can end the element or begin a comment. */
const scriptText = (facts: InstallationFacts): string =>
  JSON.stringify(facts).replace(/[<>&\u2028\u2029]/g, (character) => `\\u${hex(character)}`)

const hex = (character: string): string => character.charCodeAt(0).toString(16).padStart(4, "0")

/** What is shown in a checkout in which the portal was not built. */
export const notBuilt = () =>
  plainPage(
    503,
    "The portal is not built yet",
    `<p>Run <code>npm run build:portal</code>, and restart the program. The <a href="/admin-ui/docs">documentation of the API</a> is there already.</p>`
  )
