import type { BrowserContext } from "playwright-core"

export type Cookies = Parameters<BrowserContext["addCookies"]>[0]

/** Signs in as a program does, and returns the cookie for the browser. */
export const signIn = async (origin: string, token: string): Promise<Cookies> => {
  const response = await fetch(`${origin}/admin-ui/session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token })
  })
  const [, name = "", value = ""] = /^([^=]+)=([^;]+)/.exec(response.headers.get("set-cookie") ?? "") ?? []
  if (!response.ok || name === "") throw new Error(`signing in answered ${response.status}: ${await response.text()}`)
  return [{ name, value, url: origin, httpOnly: true, sameSite: "Strict" }]
}
