import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/",
  validateSearch: textSearch(),
  component: laterPage(() => import("./HomePage.tsx"))
})

export const homeRoutes = [list] as const
