import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { holderLayout } from "../../app/layouts.tsx"

const home = createRoute({
  getParentRoute: () => holderLayout,
  path: "/",
  validateSearch: textSearch("measure"),
  component: laterPage(() => import("./MyHomePage.tsx"))
})

const use = createRoute({
  getParentRoute: () => holderLayout,
  path: "use",
  validateSearch: textSearch("tool", "model"),
  component: laterPage(() => import("./UsePage.tsx"))
})

const models = createRoute({
  getParentRoute: () => holderLayout,
  path: "models",
  validateSearch: textSearch(),
  component: laterPage(() => import("./MyModelsPage.tsx"))
})

const requests = createRoute({
  getParentRoute: () => holderLayout,
  path: "requests",
  validateSearch: textSearch("model", "status", "tab"),
  component: laterPage(() => import("./MyRequestsPage.tsx"))
})

const guardrails = createRoute({
  getParentRoute: () => holderLayout,
  path: "guardrails",
  validateSearch: textSearch(),
  component: laterPage(() => import("./MyGuardrailsPage.tsx"))
})

const key = createRoute({
  getParentRoute: () => holderLayout,
  path: "key",
  validateSearch: textSearch(),
  component: laterPage(() => import("./MyKeyPage.tsx"))
})

export const myRoutes = [home, use, models, requests, guardrails, key] as const
