import { MantineProvider } from "@mantine/core"
import { useMediaQuery } from "@mantine/hooks"
import { Notifications, notifications } from "@mantine/notifications"
import { notifyManager, QueryClient, QueryClientProvider } from "@tanstack/react-query"
import { RouterProvider } from "@tanstack/react-router"
import { setNonce } from "get-nonce"
import { ApiError, isRefusal } from "./api/ApiError.ts"
import { nonce } from "./api/installation.ts"
import { useLiveConnection } from "./api/live.ts"
import { type SignedIn, whenPersonLeaves } from "./api/session.ts"
import "./theme/components.css"
import "./theme/mantine.css"
import { router } from "./router.tsx"
import { theme, variables } from "./theme/theme.ts"

// Dialogs stop the page behind them from scrolling with a style that a library of Mantine adds.
if (nonce !== undefined) setNonce(nonce)

// A page has a dozen answers at about the same time, and draws them together.
notifyManager.setScheduler((tell) => (document.hidden ? window.setTimeout(tell) : requestAnimationFrame(tell)))

const queries = new QueryClient({
  defaultOptions: {
    // without a network there is an error to tell at once, and not a read or a change that waits in silence
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      staleTime: 15_000,
      retry: (failures, error) => failures < 2 && !(error instanceof ApiError && isRefusal(error)),
      // a person waits for the second try
      retryDelay: (failures) => 300 * 3 ** failures,
      refetchOnWindowFocus: true
    }
  }
})

whenPersonLeaves(() => {
  queries.clear()
  notifications.clean()
})

/** Loads the page of the address, so that the frame and the page appear at once. */
export const loadPage = async (): Promise<void> => {
  const [, , foundRoute] = router.getMatchedRoutes(router.latestLocation.pathname)
  if (foundRoute !== undefined) await router.loadRouteChunk(foundRoute)
}

/** At the bottom of a narrow screen they would cover its menu. */
const Toasts = () => {
  const isNarrow = useMediaQuery("(max-width: 767px)", undefined, { getInitialValueInEffect: false })
  return <Notifications position={isNarrow === true ? "top-center" : "bottom-right"} limit={4} autoClose={6_000} />
}

const App = ({ who }: { readonly who: SignedIn }) => {
  useLiveConnection(who.scopes)
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={variables}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce ?? ""}
    >
      <QueryClientProvider client={queries}>
        <Toasts />
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  )
}

export default App
