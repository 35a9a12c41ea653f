import { useSyncExternalStore } from "react"
import { ApiError } from "./ApiError.ts"
import { call } from "./control.ts"
import type { ResponseOf } from "./Endpoints.ts"
import { holdsBegun, untilNotHeld } from "./heldSession.ts"
import { setCsrf, whenSignedOut } from "./http.ts"
import { installation } from "./installation.ts"

export type SignedIn = ResponseOf<"GET", "/admin-ui/session">

export type Session =
  | { readonly state: "unknown" }
  | { readonly state: "unreachable"; readonly message: string }
  /** `ended`: why the sign-in is there, if there was a session until now. */
  | { readonly state: "signed-out"; readonly ended?: string | undefined }
  | { readonly state: "signed-in"; readonly who: SignedIn }

let session: Session = { state: "unknown" }
const listeners = new Set<() => void>()

/** Each function drops something that is kept of a person, as the next one at this browser may not be allowed to see it. */
const forgetting = new Set<() => void>([() => localStorage.removeItem("svc-recent")])

/** `forget` is called once somebody else, or nobody, is signed in. */
export const whenPersonLeaves = (forget: () => void): void => {
  forgetting.add(forget)
}

let person: string | undefined

/**
 * A new secret is the same person. The name of a key may be the beginning of its secret, and changes with it; a token that is
 * rotated has a successor with another id, but the same name and scopes.
 */
export const personOf = ({ id, kind, name, scopes }: SignedIn): string =>
  JSON.stringify(kind === "gateway_key" ? [kind, id] : [kind, name, scopes])

const become = (next: Session): void => {
  const present = next.state === "signed-in" ? personOf(next.who) : undefined
  const hasLeft = next.state === "signed-out" || (present !== undefined && person !== undefined && present !== person)
  if (hasLeft) for (const forget of forgetting) forget()
  if (hasLeft || present !== undefined) person = present
  session = next
  setCsrf(next.state === "signed-in" ? next.who.csrf : undefined)
  for (const listener of listeners) listener()
}

// the request may have been sent with the cookie of a session that has another one's place by now
whenSignedOut(() => {
  if (session.state === "signed-in") void readSession()
})

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export const useSession = (): Session => useSyncExternalStore(subscribe, () => session)

const expected = "svc-session"

/** Notes that the browser has a session, or is about to get one at the identity provider. */
export const expectSession = (isExpected: boolean): void => {
  if (isExpected) localStorage.setItem(expected, "yes")
  else localStorage.removeItem(expected)
}

export const wasSignedIn = (): boolean => installation.session || localStorage.getItem(expected) !== null

let reading: Promise<void> | undefined

/** Asks the server who is signed in. A browser that has never had a session need not ask. */
export const readSession = (): Promise<void> => {
  reading ??= read().finally(() => {
    reading = undefined
  })
  return reading
}

const read = async (): Promise<void> => {
  if (!wasSignedIn()) return become({ state: "signed-out" })
  await untilNotHeld()
  const begun = holdsBegun()
  try {
    become({ state: "signed-in", who: await call("GET", "/admin-ui/session", {}) })
  } catch (cause) {
    if (cause instanceof ApiError && cause.status !== 0 && cause.status < 500) {
      // the answer is about the session before the new secret
      if (begun !== holdsBegun()) return read()
      become({ state: "signed-out", ended: endOf(cause) })
    } else become({ state: "unreachable", message: cause instanceof Error ? cause.message : "" })
  }
}

/** Returns why a browser that had a session has lost it: its key ends it, or time, a sign-out elsewhere, or a server that forgot it. */
const endOf = ({ code, message }: ApiError): string | undefined => {
  if (code.endsWith("_virtual_key")) return message
  return localStorage.getItem(expected) === null ? undefined : forgotten
}

const forgotten =
  "The session has ended, or the server was restarted and has forgotten it. Sign in again, and this page is where it was."

/** The token is sent once, and kept nowhere: the session cookie takes its place. */
export const signIn = async (token: string): Promise<void> => {
  become({ state: "signed-in", who: await call("POST", "/admin-ui/session", { body: { token } }) })
}

export const signOut = async (): Promise<void> => {
  await call("DELETE", "/admin-ui/session", {})
  become({ state: "signed-out" })
}

/** True if one of the scopes is held. An empty list is open to everyone who is signed in. */
export const allows = (held: ReadonlyArray<string>, required: ReadonlyArray<string>): boolean =>
  required.length === 0 || held.includes("*") || required.some((scope) => held.includes(scope))

/** Each of these scopes lets a token see tasks. */
export const scopesOfTasks = ["tasks:read", "tasks:operate"] as const

/** Returns whether there are tasks at this address, and the signed-in token may see them. */
export const useSeesTasks = (): boolean => useAllowed(...scopesOfTasks) && installation.tasks

/** Returns whether the signed-in token holds one of the scopes. */
export const useAllowed = (...required: ReadonlyArray<string>): boolean => {
  const current = useSession()
  return current.state === "signed-in" && allows(current.who.scopes, required)
}
