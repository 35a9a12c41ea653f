/** What the server says of itself in the page, before anybody has signed in. */
export interface Installation {
  /** The name of the environment, such as `production` (`SVC_ENVIRONMENT`). */
  readonly environment: string | null
  readonly version: string | null
  /** Where applications reach the gateway, such as `http://127.0.0.1:8080`. Snippets name it. */
  readonly gateway_url: string | null
  /** True where operators can sign in at an identity provider. */
  readonly oidc: boolean
  /** True if the browser sent a session cookie with the request for the page. */
  readonly session: boolean
  /** True on the listener that serves holders of keys alone. */
  readonly holders_only: boolean
  /** True where operators see tasks at this address. */
  readonly tasks: boolean
}

/** The server of `npm run portal` says nothing. */
const absent: Installation = {
  environment: null,
  version: null,
  gateway_url: null,
  oidc: false,
  session: false,
  holders_only: false,
  tasks: true
}

const read = (): Installation => {
  const text = document.getElementById("installation")?.textContent ?? ""
  return text === "" ? absent : { ...absent, ...JSON.parse(text) }
}

export const installation = read()

/** The nonce that the content security policy asks of styles which scripts add. */
export const nonce = document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce
