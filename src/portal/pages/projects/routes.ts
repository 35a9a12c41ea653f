import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/projects",
  validateSearch: textSearch(),
  component: lazyRouteComponent(() => import("./ProjectsPage.tsx"))
})

export const projectsRoutes = [list] as const
