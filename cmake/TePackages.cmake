# SPDX-License-Identifier: Apache-2.0
# Debian packages: `cpack --config BUILD/CPackConfig.cmake -B DIRECTORY`, once te-controller, host-agent and tectl are built.
# Each component is one package. What they hold besides the programs is in deploy/.

set(TE_PACKAGE_CONTACT "roce-te maintainers <maintainers@roce-te.invalid>" CACHE STRING "Maintainer field of the Debian packages")
set(deploy ${PROJECT_SOURCE_DIR}/deploy)

# te_compress(INPUT OUTPUT): as Debian policy 12.3 and 12.7 ask for manual pages and changelogs.
function(te_compress input output)
  get_filename_component(directory ${output} DIRECTORY)
  file(MAKE_DIRECTORY ${directory})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${input})
  execute_process(COMMAND gzip -9nc ${input} OUTPUT_FILE ${output} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# te_package(NAME DESCRIPTION TEXT [MAN page.8 ...] [DEPENDS text] [RECOMMENDS text] [CONTROL file ...])
function(te_package name)
  cmake_parse_arguments(ARG "" "DESCRIPTION;DEPENDS;RECOMMENDS" "MAN;CONTROL" ${ARGN})
  set(made ${PROJECT_BINARY_DIR}/packages/${name})
  te_compress(${deploy}/debian/changelog ${made}/changelog.gz)
  install(FILES ${made}/changelog.gz ${deploy}/debian/copyright DESTINATION share/doc/${name} COMPONENT ${name})
  foreach(page IN LISTS ARG_MAN)
    string(REGEX MATCH "[0-9]$" section ${page})
    te_compress(${deploy}/man/${page} ${made}/${page}.gz)
    install(FILES ${made}/${page}.gz DESTINATION share/man/man${section} COMPONENT ${name})
  endforeach()
  list(TRANSFORM ARG_CONTROL PREPEND ${deploy}/debian/${name}/)
  string(TOUPPER ${name} NAME)
  set(CPACK_DEBIAN_${NAME}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${NAME}_DESCRIPTION "${ARG_DESCRIPTION}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${NAME}_PACKAGE_DEPENDS "${ARG_DEPENDS}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${NAME}_PACKAGE_RECOMMENDS "${ARG_RECOMMENDS}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${NAME}_PACKAGE_CONTROL_EXTRA "${ARG_CONTROL}" PARENT_SCOPE)
endfunction()

# systemd-sysusers makes the system users; the agent's units reload by procps's kill.
set(sysusers "systemd | systemd-standalone-sysusers | systemd-sysusers")

te_package(roce-te-controller
  DESCRIPTION "traffic engineering for RoCE clusters: the controller
te-controller learns which equal-cost path each RoCEv2 flow of a training job
takes, finds out which links are busy or broken, and has the agents on the
hosts move flows by changing their UDP source port. It observes until it is
told to act.
.
One is needed for each cluster, on a host of the management network."
  MAN te-controller.8 DEPENDS "${sysusers}" RECOMMENDS "roce-te-tools"
  CONTROL conffiles postinst prerm postrm)
install(TARGETS te-controller RUNTIME DESTINATION sbin COMPONENT roce-te-controller)
install(FILES ${deploy}/systemd/te-controller.service DESTINATION /lib/systemd/system COMPONENT roce-te-controller)
install(FILES ${deploy}/sysusers/roce-te-controller.conf DESTINATION lib/sysusers.d COMPONENT roce-te-controller)
install(FILES ${deploy}/config/te-controller.yaml DESTINATION /etc/roce-te COMPONENT roce-te-controller)
install(FILES ${deploy}/config/topology.yaml DESTINATION share/doc/roce-te-controller/examples COMPONENT roce-te-controller)

te_package(roce-te-agent
  DESCRIPTION "traffic engineering for RoCE clusters: the agent of a host or switch
host-agent counts the RoCEv2 flows that pass the kernel of a host, probes
their paths, and rewrites the UDP source port of the flows that the
controller wants moved. On switches that run Linux it reports their links.
.
When it stops, what is steered stays steered by a program in the kernel, and
the next one adopts that. Removing this package removes the program too."
  MAN host-agent.8 DEPENDS "${sysusers}, procps" CONTROL conffiles postinst prerm postrm)
install(TARGETS host-agent RUNTIME DESTINATION sbin COMPONENT roce-te-agent)
install(FILES ${deploy}/systemd/roce-te-agent.service ${deploy}/systemd/roce-te-switch-agent.service
        DESTINATION /lib/systemd/system COMPONENT roce-te-agent)
install(FILES ${deploy}/sysusers/roce-te-agent.conf DESTINATION lib/sysusers.d COMPONENT roce-te-agent)
install(FILES ${deploy}/config/host-agent.yaml DESTINATION /etc/roce-te COMPONENT roce-te-agent)
install(FILES ${deploy}/config/switch-agent.yaml DESTINATION share/doc/roce-te-agent/examples COMPONENT roce-te-agent)

te_package(roce-te-tools
  DESCRIPTION "traffic engineering for RoCE clusters: the command line client
tectl asks a running te-controller what it sees, which path a flow takes and
why, what it plans and what it did, and tells it to act or to pause.
.
It also checks topology files, without a controller."
  MAN tectl.1)
install(TARGETS tectl RUNTIME DESTINATION bin COMPONENT roce-te-tools)

set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL roce-te-controller roce-te-agent roce-te-tools)
set(CPACK_PACKAGE_NAME roce-te)
set(CPACK_PACKAGE_VENDOR roce-te)
set(CPACK_PACKAGE_CONTACT "${TE_PACKAGE_CONTACT}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
include(CPack)
