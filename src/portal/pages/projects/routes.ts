import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/projects",
  validateSearch: textSearch("q", "tag", "do"),
  component: lazyRouteComponent(() => import("./ProjectsPage.tsx"))
})

const one = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/projects/$id",
  validateSearch: textSearch("tab"),
  component: lazyRouteComponent(() => import("./ProjectPage.tsx"))
})

export const projectsRoutes = [list, one] as const
