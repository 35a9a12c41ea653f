import { randomBytes } from "node:crypto"
import { HttpServerResponse } from "effect/http"
import { securityHeaders } from "./RequestIds.ts"

const style = `:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 34rem; margin: 15vh auto; padding: 0 1rem }
h1 { font-size: 1.25rem }
button { font: inherit; padding: .4rem 1rem }`

/** A page without scripts that says one thing. The caller has made sure that `content` is HTML. */
export const plainPage = (status: number, title: string, content: string): HttpServerResponse.HttpServerResponse => {
  const nonce = randomBytes(18).toString("base64")
  return HttpServerResponse.text(
    `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex"><title>${title}</title><style nonce="${nonce}">${style}</style></head>
<body><main><h1>${title}</h1>${content}</main></body>
</html>
`,
    {
      status,
      contentType: "text/html; charset=utf-8",
      headers: {
        ...securityHeaders,
        "content-security-policy": `default-src 'none'; style-src 'nonce-${nonce}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`
      }
    }
  )
}
