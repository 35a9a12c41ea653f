import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi, PortalApi } from "../api/ControlApi.ts"
import { OidcSignIn } from "../sign-in/OidcSignIn.ts"
import { SignIn } from "../sign-in/SignIn.ts"

/** On the listener for holders of keys. */
export const ofHolders = HttpApiBuilder.group(
  PortalApi,
  "session",
  Effect.fn(function* (handlers) {
    const { show, signIn, signOut } = yield* SignIn
    return handlers.handleAll({
      create: ({ payload }) => signIn(payload.token),
      show: () => show,
      end: () => signOut
    })
  })
)

export const layer = HttpApiBuilder.group(
  ControlApi,
  "session",
  Effect.fn(function* (handlers) {
    const { show, signIn, signOut } = yield* SignIn
    const oidc = yield* OidcSignIn
    return handlers.handleAll({
      create: ({ payload }) => signIn(payload.token),
      show: () => show,
      end: () => signOut,
      oidc: ({ query }) => oidc.start(query.return_to),
      oidcCallback: ({ query }) => oidc.finish(query)
    })
  })
)
