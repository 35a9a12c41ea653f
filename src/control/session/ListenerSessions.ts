import { Context } from "effect"

/** How a listener keeps the sessions of browsers. Browsers send a cookie to all ports of a host, whichever has set it. */
export interface ListenerSessions {
  /** The name of the cookie. Each listener has one of its own, so that signing in at one leaves the other's session. */
  readonly cookie: string
  /** True where only gateway keys sign in. The session of an operator is none there, whatever cookie contains it. */
  readonly holdersOnly: boolean
}

export const ListenerSessions = Context.Reference<ListenerSessions>("svc/control/ListenerSessions", {
  defaultValue: () => ({ cookie: "svc_session", holdersOnly: false })
})

/** Those of the listener for holders of keys. */
export const ofHolders: ListenerSessions = { cookie: "svc_holder_session", holdersOnly: true }
