import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/guardrails",
  validateSearch: textSearch("tab", "do", "action", "mode"),
  component: laterPage(() => import("./GuardrailsPage.tsx"))
})

const one = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/guardrails/$name",
  validateSearch: textSearch("tab", "do", "action", "mode", "outcome"),
  component: laterPage(() => import("./GuardrailPage.tsx"))
})

export const guardrailsRoutes = [list, one] as const
