import { createRouter } from "@tanstack/react-router"
import { PageFailed } from "./app/fallbacks/Fallbacks.tsx"
import { holderLayout, operatorLayout, root } from "./app/layouts.tsx"
import { auditRoutes } from "./pages/audit/routes.ts"
import { boardRoutes } from "./pages/board/routes.ts"
import { configurationRoutes } from "./pages/configuration/routes.ts"
import { deadLettersRoutes } from "./pages/dead-letters/routes.ts"
import { guardrailsRoutes } from "./pages/guardrails/routes.ts"
import { homeRoutes } from "./pages/home/routes.ts"
import { keysRoutes } from "./pages/keys/routes.ts"
import { limitsRoutes } from "./pages/limits/routes.ts"
import { modelsRoutes } from "./pages/models/routes.ts"
import { myRoutes } from "./pages/my/routes.ts"
import { operatorsRoutes } from "./pages/operators/routes.ts"
import { policiesRoutes } from "./pages/policies/routes.ts"
import { projectsRoutes } from "./pages/projects/routes.ts"
import { requestsRoutes } from "./pages/requests/routes.ts"
import { routingRoutes } from "./pages/routing/routes.ts"
import { servicesRoutes } from "./pages/services/routes.ts"
import { settingsRoutes } from "./pages/settings/routes.ts"
import { studioRoutes } from "./pages/studio/routes.ts"
import { systemRoutes } from "./pages/system/routes.ts"
import { tasksRoutes } from "./pages/tasks/routes.ts"
import { upstreamsRoutes } from "./pages/upstreams/routes.ts"
import { usageRoutes } from "./pages/usage/routes.ts"
import { Skeletons } from "./shared/page/Skeletons.tsx"

const tree = root.addChildren([
  operatorLayout.addChildren([
    ...homeRoutes,
    ...requestsRoutes,
    ...usageRoutes,
    ...limitsRoutes,
    ...boardRoutes,
    ...tasksRoutes,
    ...deadLettersRoutes,
    ...keysRoutes,
    ...projectsRoutes,
    ...policiesRoutes,
    ...guardrailsRoutes,
    ...modelsRoutes,
    ...routingRoutes,
    ...upstreamsRoutes,
    ...servicesRoutes,
    ...studioRoutes,
    ...auditRoutes,
    ...configurationRoutes,
    ...operatorsRoutes,
    ...settingsRoutes,
    ...systemRoutes
  ]),
  holderLayout.addChildren([...myRoutes])
])

export const router = createRouter({
  routeTree: tree,
  basepath: "/admin-ui",
  defaultPreload: "intent",
  defaultPendingMs: 300,
  defaultPendingComponent: Skeletons,
  // a page that fails leaves the frame around it alone
  defaultErrorComponent: PageFailed,
  // what a page holds about one object, such as an open dialog, must not reach the next one
  defaultRemountDeps: ({ params }) => params,
  scrollRestoration: true
})

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router
  }
}
