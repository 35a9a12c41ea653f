import { PageHeader } from "../../shared/page/PageHeader.tsx"

const HomePage = () => <PageHeader title="Home" />

export default HomePage
