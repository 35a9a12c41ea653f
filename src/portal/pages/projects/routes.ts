import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/projects",
  validateSearch: textSearch("q", "tag", "do"),
  component: laterPage(() => import("./ProjectsPage.tsx"))
})

const one = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/projects/$id",
  validateSearch: textSearch("tab"),
  component: laterPage(() => import("./ProjectPage.tsx"))
})

export const projectsRoutes = [list, one] as const
