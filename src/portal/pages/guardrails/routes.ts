import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/guardrails",
  validateSearch: textSearch("tab", "do", "action", "mode"),
  component: lazyRouteComponent(() => import("./GuardrailsPage.tsx"))
})

const one = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/guardrails/$name",
  validateSearch: textSearch("tab", "do", "action", "mode", "outcome"),
  component: lazyRouteComponent(() => import("./GuardrailPage.tsx"))
})

export const guardrailsRoutes = [list, one] as const
